ALTER TABLE lab ADD patients int
