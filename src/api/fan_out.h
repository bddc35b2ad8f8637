// FanOut: the same text to many streams, without holding up anybody else.
//
// A thousand writes take milliseconds, in which the server's one thread would answer nobody: they
// are made in small pieces, with whatever else came in between. Each stream gets its texts in the
// order they were sent. A stream that does not read is cut off rather than kept: its reader begins
// anew where it was.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "net/http_server.h"

namespace muster::api {

struct Delivery {
  std::shared_ptr<net::Exchange> to;
  std::shared_ptr<const std::string> text;
};

class FanOut : public std::enable_shared_from_this<FanOut> {
 public:
  // From any thread.
  void Send(net::HttpServer& server, std::vector<Delivery> deliveries);

 private:
  void Piece(net::HttpServer& server);

  std::deque<Delivery> waiting_;  // on the server's thread
  bool busy_ = false;
};

}  // namespace muster::api
