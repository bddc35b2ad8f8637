// RecordList: lists of what happened, which only grow: events, decisions, checkpoints.
//
// They stand by revision and are read from where a page begins, never as a whole. However few of
// the records the caller may see or asked for, one page looks at so many and no more; the next goes
// on from there, so a page may be empty and have a `next`. By default the latest come, newest
// first; of events the latest too, but each page in the order in which they happened.
#pragma once

#include <functional>
#include <optional>

#include "api/desk.h"
#include "model/event.h"

namespace muster::api {

// What is shown of a record; nothing: it is not of this list.
using RecordView =
    std::function<std::optional<DocNode>(const state::Record&, const model::EventBody&)>;

struct RecordsOf {
  model::JobNumber job = 0;  // 0: of any
  RecordView view;
};

// `which` is asked on the controller's thread and may refuse.
void ListRecords(Desk& desk, const Call& call,
                 std::function<Result<RecordsOf>(Controller&, const Access&)> which);

}  // namespace muster::api
