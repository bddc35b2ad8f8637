// Past: what happened lately, as a file that can be replayed elsewhere.
//
// The jobs of everybody are in it, so it is for admins. It is read in pieces between the
// scheduler's turns, by a thread that waits for each of them.
#pragma once

#include "api/desk.h"
#include "api/worker.h"

namespace muster::api {

void ExportPast(Desk& desk, Worker& clerk, const Call& call);

}  // namespace muster::api
