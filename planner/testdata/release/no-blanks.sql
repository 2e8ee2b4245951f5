SELECT(age)FROM"patients"p
