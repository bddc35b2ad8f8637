// Runs: the calls about what jobs reported of their training.
//
// Who may see a job sees its run. A run is found by the job's number or name, as the job is, also
// when the job has ended; it is gone when history forgets the job.
#pragma once

#include "api/desk.h"

namespace muster::api {

void ListRuns(Desk& desk, const Call& call);
void GetRun(Desk& desk, const Call& call);

}  // namespace muster::api
