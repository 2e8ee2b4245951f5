DROP TABLE "#Tableau_1_Connect", "patients_probe"
