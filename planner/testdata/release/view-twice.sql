SELECT count(*) FROM elderly a JOIN elderly b ON a.zip = b.zip
