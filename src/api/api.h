// Api: the REST interface, in front of the controller.
//
// Translates requests into commands and views into JSON; holds no state and decides nothing. What
// changes something is answered when it is in the journal. Bytes of logs are read here, off the
// controller's thread. Errors are application/problem+json with our code, a message and a hint.
#pragma once

#include <memory>
#include <string>

#include "control/service.h"
#include "net/http_server.h"

namespace muster::api {

class Api {
 public:
  Api(control::Service& service, std::string version);
  ~Api();

  // Streams need the server's timer; set before the first request.
  void Attach(net::HttpServer& server);
  void Handle(net::Request request, std::shared_ptr<net::Exchange> exchange);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

int HttpStatus(ErrorCode code);

}  // namespace muster::api
