SELECT "größe".age AS "Alter – Jahre" FROM patients AS "größe"
