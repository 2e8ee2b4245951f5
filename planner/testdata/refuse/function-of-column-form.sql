SELECT p.to_json FROM patients p
