VACUUM patients
