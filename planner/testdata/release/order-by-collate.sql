SELECT zip FROM patients ORDER BY zip COLLATE "C"
