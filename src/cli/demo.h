// `muster demo share`: a day of three researchers and eight GPUs, told.
//
// Plays the day of sim/story.h as a pool and with fixed quotas and prints the story, both timelines
// and a table side by side, or all of it as one JSON object. Every number is computed by that
// simulation on the engine. Colour only on a terminal, and not where NO_COLOR is set.
#pragma once

#include "cli/session.h"

namespace muster::cli {

int RunDemoShare(Output output);

}  // namespace muster::cli
