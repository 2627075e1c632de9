"""What Java does otherwise than Python, where only Connect shows it: the calendar and SimpleDateFormat."""
