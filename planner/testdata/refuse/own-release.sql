SELECT * FROM tailor_release.chain_1
