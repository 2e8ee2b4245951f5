SELECT age FROM patients JOIN old_patients o ON true
