#ifndef PARASOL_CHIEF_JOB_PAGE_TEXT_H_
#define PARASOL_CHIEF_JOB_PAGE_TEXT_H_

namespace parasol {

// The page about a job. Its script asks for status.json and shows what is
// there, always as text: names of tasks may come from strangers.
extern const char kJobPageHtml[];
extern const char kJobPageStyle[];
extern const char kJobPageScript[];

}  // namespace parasol

#endif  // PARASOL_CHIEF_JOB_PAGE_TEXT_H_
