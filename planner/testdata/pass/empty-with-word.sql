;/* patients */;
