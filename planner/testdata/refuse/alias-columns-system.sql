SELECT ctid FROM patients p (a)
