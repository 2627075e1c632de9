"""Records between a terminal and topics: what `moldau produce` and `moldau consume` are made of.

Output is made batch by batch by functions that are compiled from the template: a call a record would cost most of the
time. `formats` turns bytes into text and back, `template` and `envelope` lay records out, `positions` says where to
begin and end, `reading` and `grouped` bring batches, `lines` and `writing` take them away.
"""
