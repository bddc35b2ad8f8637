#include "train/exact/shard_program.h"

#include <algorithm>
#include <set>

namespace muster::train {

namespace {

class Writer {
 public:
  // Gives the buffer that holds the node's sum.
  int Write(ShardRange node) {
    if (node.size() == 1) {
      const int buffer = Take();
      out_.computes.push_back({node.first, buffer, {}, -1, 0});
      return buffer;
    }
    const int split = SplitOf(node);
    const int left = Write({node.first, split});
    const int right = Write({split, node.last});
    out_.computes.back().adds.push_back({left, right});
    free_.insert(right);
    return left;
  }
  void Finish(ShardRange range, int buffer) {
    out_.computes.back().node = static_cast<int>(out_.nodes.size());
    out_.nodes.push_back({range, buffer});
  }
  int Take() {
    if (free_.empty()) return out_.buffers++;
    const int buffer = *free_.begin();
    free_.erase(free_.begin());
    return buffer;
  }

  ShardProgram out_;
  std::set<int> free_;
};

}  // namespace

ShardProgram ProgramFor(ShardRange run, int shards, bool exact) {
  if (!exact) return ProgramOver(run, 1);
  Writer writer;
  for (const auto& node : CoverOf(run, shards)) writer.Finish(node, writer.Write(node));
  return writer.out_;
}

ShardProgram ProgramOver(ShardRange run, int batches) {
  Writer writer;
  for (int batch = 0; batch < batches; ++batch) {
    for (int shard = run.first; shard < run.last; ++shard) {
      const int buffer = batch == 0 && shard == run.first ? 0 : 1;
      writer.out_.computes.push_back({shard, buffer, {}, -1, batch});
      if (buffer == 1) writer.out_.computes.back().adds.push_back({0, 1});
    }
  }
  writer.out_.buffers = std::min(2, static_cast<int>(writer.out_.computes.size()));
  if (!writer.out_.computes.empty()) writer.Finish(run, 0);
  return writer.out_;
}

}  // namespace muster::train
