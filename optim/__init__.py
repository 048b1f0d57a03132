"""SGD, RMSprop, Adam, AdamW, NAdam, RAdam, Lamb, Lars, lr_scheduler: imported when asked for."""
