SELECT p.age FROM hospital . public . patients AS p
