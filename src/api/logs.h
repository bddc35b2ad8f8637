// Logs: the output of a worker as a stream of bytes, all that is kept of it, oldest first.
//
// The controller is asked for the file's name and whether the job still runs, nothing else; bytes
// are read on the server's thread in bounded pieces, as fast as the reader takes them. A followed
// log ends when the job has ended and everything was sent.
// Query: worker, err, follow, tail (lines), since (Unix time in ms: files last written to before it
// are left out whole), about (facts of the log as JSON instead).
#pragma once

#include "api/desk.h"

namespace muster::api {

// For the job's owner and the admins of its queue.
void ReadLogs(Desk& desk, const Call& call);

}  // namespace muster::api
