;;SELECT age FROM patients;;
