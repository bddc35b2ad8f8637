// The `queues` list: reading it into Queues and writing them back.
//
// The tree is told by the names: "vision/detection" is a child of "vision", which is in the same
// file or there already. A queue's place in the list is its age (created_order). Amounts come out
// in the units of model/queue.h: thousandths for GPUs, GPU types and cores, bytes for memory,
// pieces for the rest. That the children were promised more than their parent is a warning, because
// the tree still works.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/document.h"
#include "model/document_writer.h"
#include "model/problems.h"
#include "model/queue.h"

namespace muster::model {

// The values of the key `queues` in the documents of one file; together they are one tree.
std::vector<Queue> QueuesFromNodes(std::span<const DocNode* const> lists, Problems& problems);
DocNode QueuesToNode(const std::vector<Queue>& queues);

Result<std::vector<Queue>> DecodeQueues(std::string_view text);
std::string EncodeQueues(const std::vector<Queue>& queues, TextFormat format);

}  // namespace muster::model
