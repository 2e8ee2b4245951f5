SELECT xmlelement(name a, age) FROM patients
