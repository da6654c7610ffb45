module weir.test/mux

go 1.21
