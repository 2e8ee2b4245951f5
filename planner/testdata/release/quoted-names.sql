SELECT "Odd Name", "p q"."age" FROM patients "p q"
