#ifndef PARASOL_COORDINATOR_PAGE_JOB_PAGE_TEXT_H_
#define PARASOL_COORDINATOR_PAGE_JOB_PAGE_TEXT_H_

namespace parasol {

// The page about a job. Its script asks for status.json and shows what is
// there, always as text: names of tasks may come from strangers.
extern const char kJobPageHtml[];
extern const char kJobPageStyle[];
extern const char kJobPageScript[];

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_PAGE_JOB_PAGE_TEXT_H_
