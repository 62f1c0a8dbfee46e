"""One measurement per stage, of the selection and of whole conversations: questions, figures and tables."""
