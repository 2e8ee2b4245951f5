COPY patients (age) TO STDOUT
