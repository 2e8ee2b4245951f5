SELECT l.*, lab.result FROM lab l JOIN lab USING (age)
