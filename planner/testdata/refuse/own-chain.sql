SELECT * FROM tailor.chain
