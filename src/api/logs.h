// Logs: the output of a worker as a stream of bytes.
//
// The controller is asked for the file's name and whether the job still runs, nothing else; bytes
// are read on the server's thread in bounded pieces. A followed log ends when the job has ended and
// everything was sent. Rotation is noticed by the file that is behind the name.
#pragma once

#include "api/requests.h"
#include "control/service.h"
#include "net/http_server.h"

namespace muster::api {

void StreamLogs(control::Service& service, net::HttpServer* server, const Call& call);

}  // namespace muster::api
