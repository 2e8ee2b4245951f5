SELECT p.age, a.ward FROM patients p JOIN audits a ON p.id = a.id
