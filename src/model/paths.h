// Paths: which key of a document a problem is about, as "jobs[1].resources.gpus".
//
// Decoders report places, since that is what a person with an editor needs; a program that sent a
// body needs the key. It is found afterwards in the tree that was read, so that no decoder has to
// carry it along. Where a map begins with the key that is meant, the key wins. One walk over the
// tree, whatever the number of problems; files of several documents begin with their number.
#pragma once

#include <vector>

#include "model/document.h"

namespace muster::model {

void LocateProblems(const std::vector<DocNode>& documents, Problems& problems);

}  // namespace muster::model
