SELECT xmlelement(name a, diagnosis) FROM patients
