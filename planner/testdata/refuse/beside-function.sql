SELECT count(*) FROM patients; SELECT cursor_to_xml('c', 2, true, true, '')
