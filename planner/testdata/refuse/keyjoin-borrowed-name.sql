SELECT e."patients.age" FROM encounters e
