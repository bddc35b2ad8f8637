// Submit: jobs come in, and what would become of one.
//
// Several jobs in one request are taken as a whole or not at all. Plans are tried out on a thread
// of their own, one after the other, on a copy of the state; when too many wait, the next is
// refused before anything is copied.
#pragma once

#include "api/desk.h"
#include "api/worker.h"

namespace muster::api {

void SubmitJobs(Desk& desk, const Call& call);
void PlanJob(Desk& desk, Worker& worker, const Call& call);
void PlanWaitingJob(Desk& desk, Worker& worker, const Call& call);

}  // namespace muster::api
