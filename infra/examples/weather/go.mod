module weather

go 1.24
