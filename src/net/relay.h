// Relay: a WebSocket and a stream socket of this machine, joined.
//
// Runs on the server's thread and needs nothing of a connection but the WebSocket. A side that does
// not read stops the reading of the other: at most a few hundred KiB are held each way, whatever
// is sent. What a client sent before it left still reaches the target, within ten seconds.
#pragma once

#include <boost/asio/io_context.hpp>

#include "net/http_server.h"

namespace muster::net {

// As HttpServer::Relay.
std::weak_ptr<WebSocket> StartRelay(boost::asio::io_context& context, Exchange& exchange,
                                    RelayTarget target);

}  // namespace muster::net
