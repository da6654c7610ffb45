// Go's own router, with its defaults.
package main

import (
	"fmt"
	"net"
	"net/http"
)

func main() {
	mux := http.NewServeMux()
	say := func(text string) http.HandlerFunc {
		return func(writer http.ResponseWriter, _ *http.Request) { fmt.Fprint(writer, text) }
	}
	mux.HandleFunc("/v1/pay", say("PAY"))
	mux.HandleFunc("/v1/files/", say("FILES"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, mux))
}
