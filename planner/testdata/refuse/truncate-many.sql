TRUNCATE names, patients CASCADE
