// ViewParts: what several views show alike: amounts, times, places, preemptions, ends.
//
// Times are RFC 3339 in UTC. Only for the views of this room, and for lists that ask the same of a
// job.
#pragma once

#include <cstdint>
#include <string>

#include "control/controller.h"
#include "model/document_writer.h"

namespace muster::control {

using model::DocNode;

DocNode TimeNode(std::int64_t wall_ms);
DocNode Milli(std::int64_t value);
// {id, name}: how every object begins.
DocNode ObjectNode(const std::string& id, const std::string& name);
// When it came, where that is known, and the revision of its last change.
void PutAge(DocNode& node, std::int64_t created_ms, std::uint64_t revision);
DocNode Devices(std::uint64_t mask);
DocNode PreemptionView(const state::State& state, const Access& access,
                       const state::Preemption& one);
// Somebody who makes, or would make, room.
model::DocNode DisplacedView(const Access& access, const state::JobRecord& job, model::StopWhy what,
                             model::Rule rule, std::int64_t workers);
DocNode SizeView(const state::State& state, const Access& access, const state::SizeChange& one);
// GPUs that its workers hold, in thousandths.
std::int64_t HeldGpuMilli(const state::JobRecord& job);
// How many workers it may have, and without how many it does not run.
std::int64_t MostWorkers(const model::Job& spec);
std::int64_t LeastWorkers(const model::Job& spec);
// With its name where that may be seen.
std::string JobName(const state::State& state, const Access& access, JobNumber id);
// How it ended, in a sentence.
std::string EndText(const state::JobRecord& job);
// Where nothing has a place yet, all nodes speak for the one that it will get.
void PutPoolMarks(Controller& control, DocNode& node);
// The values of `env` in a job's file, which may be secrets, become "***".
void MaskEnv(DocNode& spec);

}  // namespace muster::control
