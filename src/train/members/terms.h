// Terms: facts that must be the same for all workers of a job, in one line.
//
// "steps 500; seed 1; batch 64; rate constant:rate=0.003": names that are one word, their values,
// and semicolons between them. They are the same when the lines are; they are taken apart only to
// say what differs.
#pragma once

#include <string>
#include <string_view>

namespace muster::train {

// Both lines, the first one first; either may be empty.
std::string JoinTerms(std::string_view one, std::string_view other);

// "batch 64, not 128; rate constant:rate=0.01, not constant:rate=0.5": what `mine` has, and what
// `theirs` has in its place.
std::string DifferenceOf(std::string_view mine, std::string_view theirs);

}  // namespace muster::train
