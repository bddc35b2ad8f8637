// Jobs: the calls about jobs that are there, but for their output and for entering them.
//
// A job that the caller may not see is answered as one that is not there. Changes of another's job
// go by its number.
#pragma once

#include "api/desk.h"

namespace muster::api {

void ListJobs(Desk& desk, const Call& call);
void GetJob(Desk& desk, const Call& call);
void EditJob(Desk& desk, const Call& call);
void ActOnJob(Desk& desk, const Call& call);  // by the operation's verb
void ExplainJob(Desk& desk, const Call& call);
void ListWorkers(Desk& desk, const Call& call);  // of an array those of all its tasks
void ListArrays(Desk& desk, const Call& call);
void ListJobEvents(Desk& desk, const Call& call);
void ListJobDecisions(Desk& desk, const Call& call);
void ListCheckpoints(Desk& desk, const Call& call);

// Where the caller's words for jobs are looked up.
Controller::Search SearchOf(const Access& access);

// The job as it is, or as history remembers it, if the caller may see it.
Result<state::JobRecord> RecordOf(Controller& control, const Access& access,
                                  const std::string& word);
// Whether the job has a worker of this number, placed or not.
Result<void> HasWorker(const state::JobRecord& job, std::uint32_t worker);
// For a name whose latest job has ended: the number of the caller's only one that has not; else the
// word itself. For what can be done to a living job only.
std::string LivingOne(Controller& control, const Access& access, const std::string& word);
// Of an array its first task that waits, else the first that has not ended; else the word itself.
std::string TaskToExplain(Controller& control, const Access& access, const std::string& word);

}  // namespace muster::api
