SELECT age FROM patients /* all of them
