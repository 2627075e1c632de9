"""What Java does otherwise than Python, where people see it: texts of numbers and times, regular expressions."""
