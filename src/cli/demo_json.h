// The demo's data as JSON, for whoever wants to plot it or check it.
//
// Everything that the printed story is made from: the script (input), and for each of the two runs
// what happened, each job's record, each worker's stay on a GPU, and the measures. Times are
// milliseconds since midnight of the first day; amounts of work are GPU-milliseconds.
#pragma once

#include <string>

#include "sim/story.h"

namespace muster::cli {

std::string StoryJson(const sim::Script& script, const sim::StoryRun& pool,
                      const sim::StoryRun& fixed);

}  // namespace muster::cli
