SELECT * FROM tailor_store.epoch_1
