// Submit: jobs come in, and what would become of one.
//
// Several jobs in one request are taken as a whole or not at all. Plans are tried out on a thread
// of their own, one after the other, each on a copy of the state that is made when its turn comes;
// when too many wait, or too many of one user, the next is refused.
#pragma once

#include "api/desk.h"
#include "api/worker.h"

namespace muster::api {

void SubmitJobs(Desk& desk, const Call& call);
void PlanJob(Desk& desk, Worker& worker, const Call& call);
void PlanWaitingJob(Desk& desk, Worker& worker, const Call& call);

}  // namespace muster::api
