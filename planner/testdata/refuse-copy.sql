COPY patients TO STDOUT
