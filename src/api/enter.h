// Enter: the WebSockets into a worker: its terminal, another program beside it, one of its ports.
//
// The daemon only joins two streams; what they mean is between the shim and the caller. Who may:
// the job's owner and the admins of its queue. A port is reached only while a process of that very
// worker listens on it, because workers share the machine's network with everybody else on it.
#pragma once

#include "api/desk.h"

namespace muster::api {

void AttachJob(Desk& desk, const Call& call);
void ExecJob(Desk& desk, const Call& call);
void ForwardPort(Desk& desk, const Call& call);

}  // namespace muster::api
